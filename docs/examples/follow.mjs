// Follows the stream of events, without a gap: after a broken connection, a restart of the server or of this
// program it goes on behind the last event that it has dealt with, whose number it keeps in a file.
//
//     SVC_URL=http://localhost:8080 SVC_KEY=... node follow.mjs last-id [Resource=Shop.OrderPlaced]
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const { SVC_URL, SVC_KEY } = process.env;
const [state, conditions = ''] = process.argv.slice(2);

const lastId = () => (existsSync(state) ? readFileSync(state, 'ascii') : '0'); // 0: the oldest that is kept

function dealWith(message) {
  console.log(message.event, message.data);
  if (message.id === undefined) return;
  writeFileSync(`${state}.new`, message.id); // only now: what was under way when we crash comes again
  renameSync(`${state}.new`, state);
}

async function follow() {
  const silence = new AbortController();
  let watch = setTimeout(() => silence.abort(), 60000); // a comment comes every 15 s
  const headers = { Accept: 'text/event-stream', 'Last-Event-ID': lastId() };
  if (SVC_KEY) headers.Authorization = `apikey ${SVC_KEY}`;
  const answer = await fetch(`${SVC_URL}/Svc.Event/${conditions}`, { headers, signal: silence.signal });
  if (answer.status < 500 && !answer.ok) {
    console.error(await answer.text());
    process.exit(1);
  }
  let text = '';
  for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
    clearTimeout(watch);
    watch = setTimeout(() => silence.abort(), 60000);
    const messages = (text + part).split('\n\n');
    text = messages.pop();
    for (const message of messages) {
      const fields = Object.fromEntries(message.split('\n').map((line) => line.split(/: (.*)/s, 2)));
      if (fields.data !== undefined) dealWith(fields);
    }
  }
  clearTimeout(watch);
}

for (;;) {
  await follow().catch(() => {});
  await sleep(1000);
}
