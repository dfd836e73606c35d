// Receives webhooks of svcd: verifies each signature, refuses old ones, handles each event once.
//
//     WEBHOOK_SECRET=whsec_... PORT=9000 node receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const SECRET = Buffer.from(process.env.WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64');
const TOLERANCE_S = 300; // how far the clocks may be apart
const BODY_BYTES_MOST = 1 << 20;
const KNOWN_MOST = 10000;

const known = new Set(); // ids of events that were handled; a real receiver stores them

// Standard Webhooks: v1 is HMAC-SHA256 over id, timestamp and body. One good signature will do.
function isGenuine(headers, body) {
  const id = headers['webhook-id'] ?? '';
  const timestamp = headers['webhook-timestamp'] ?? '';
  if (!/^\d+$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_S) return false;
  const digest = createHmac('sha256', SECRET).update(`${id}.${timestamp}.`).update(body).digest('base64');
  const expected = Buffer.from(`v1,${digest}`);
  return (headers['webhook-signature'] ?? '').split(' ').some((one) => {
    const given = Buffer.from(one);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

function handle(event, entities) {
  console.log(`${event}: ${JSON.stringify(entities)}`);
}

async function readBody(request) {
  const parts = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += part.length;
    if (bytes > BODY_BYTES_MOST) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

async function receive(request) {
  const body = await readBody(request);
  if (body === null) return 413;
  if (request.method !== 'POST' || !isGenuine(request.headers, body)) return 400;
  const id = request.headers['webhook-id'];
  if (!known.has(id)) {
    handle(request.headers['svc-event'], JSON.parse(body.toString()));
    known.add(id);
    if (known.size > KNOWN_MOST) known.delete(known.values().next().value);
  }
  return 204;
}

const server = createServer((request, response) => {
  receive(request)
    .catch(() => 500)
    .then((status) => response.writeHead(status, status === 413 ? { Connection: 'close' } : {}).end());
});

server.listen(Number(process.env.PORT ?? 9000), '127.0.0.1', () => {
  console.log(`listening on port ${server.address().port}`);
});
