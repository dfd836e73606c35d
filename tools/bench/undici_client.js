// Posts one body over an undici Pool: undici_client.js PORT REQUEST-FILE CONNECTIONS SECONDS
// The path, headers and body are those of the request in the file. Prints one line of JSON.
const fs = require('fs');
const {Pool} = require('undici');
const [port, file, connections, seconds] = process.argv.slice(2);

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

const pool = new Pool(`http://127.0.0.1:${port}`, {connections: Number(connections), pipelining: 1});
const options = {path: line.split(' ')[1], method: 'POST', headers, body};
const start = process.hrtime.bigint();
const end = start + BigInt(Math.round(Number(seconds) * 1e9));
let answers = 0;
let errors = 0;

async function post() {
  while (process.hrtime.bigint() < end) {
    const {statusCode, body: answer} = await pool.request(options);
    for await (const chunk of answer) void chunk;
    answers++;
    if (statusCode >= 300) errors++;
  }
}

Promise.all(Array.from({length: Number(connections)}, post)).then(() => {
  const took = Number(process.hrtime.bigint() - start) / 1e9;
  const cpu = process.cpuUsage();
  console.log(JSON.stringify({answers, errors, seconds: took, cpu_us: cpu.user + cpu.system}));
  return pool.close();
});
