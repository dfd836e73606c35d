// Posts over an undici Pool:
//     undici_client.js ORIGIN REQUEST-FILE CONNECTIONS SECONDS [SECRET [CA]]
// The path, headers and body are those of the request in the file. With a SECRET (whsec_…) each is
// signed as it leaves, as Standard Webhooks says. CA is the file of an authority to trust.
// The first ten thousand, while node compiles, count in `posted` only. Prints one line of JSON.
const fs = require('fs');
const crypto = require('crypto');
const {Pool} = require('undici');
const [origin, file, connections, seconds, secret, ca] = process.argv.slice(2);
const WARM_UP_ANSWERS = 10000;
const WARM_UP_MOST_MS = 10000;
const TIMEOUT_MS = 30000;

const text = fs.readFileSync(file, 'latin1');
const blank = text.indexOf('\r\n\r\n');
const [line, ...lines] = text.slice(0, blank).split('\r\n');
const body = Buffer.from(text.slice(blank + 4), 'latin1');
const headers = {};
for (const each of lines) {
  const colon = each.indexOf(':');
  const name = each.slice(0, colon).toLowerCase();
  if (!['host', 'content-length', 'connection'].includes(name))
    headers[name] = each.slice(colon + 1).trim();
}

const key = secret && crypto.createSecretKey(Buffer.from(secret.slice('whsec_'.length), 'base64'));

function signed() {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const hmac = crypto.createHmac('sha256', key);
  hmac.update(`${headers['webhook-id']}.${timestamp}.`).update(body);
  return {...headers, 'webhook-timestamp': timestamp,
          'webhook-signature': 'v1,' + hmac.digest('base64')};
}

const pool = new Pool(origin, {
  connections: Number(connections), pipelining: 1, headersTimeout: TIMEOUT_MS,
  bodyTimeout: TIMEOUT_MS, connect: ca ? {ca: fs.readFileSync(ca)} : {}});
const options = {path: line.split(' ')[1], method: 'POST', headers, body};
let answers = 0;
let errors = 0;

async function post() {
  try {
    const request = key ? {...options, headers: signed()} : options;
    const {statusCode, body: answer} = await pool.request(request);
    for await (const chunk of answer) void chunk;
    answers++;
    if (statusCode >= 300) errors++;
  } catch {
    errors++;
  }
}

async function postWhile(goesOn) {
  const postAll = async () => {
    while (goesOn()) await post();
  };
  await Promise.all(Array.from({length: Number(connections)}, postAll));
}

async function main() {
  const warm = performance.now() + WARM_UP_MOST_MS;
  await postWhile(() => answers < WARM_UP_ANSWERS && performance.now() < warm);
  const before = answers;
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  const end = start + Number(seconds) * 1000;
  await postWhile(() => performance.now() < end);
  const took = (performance.now() - start) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  console.log(JSON.stringify({answers: answers - before, posted: answers, errors, seconds: took,
                              cpu_us: cpu.user + cpu.system}));
  await pool.close();
}

main();
