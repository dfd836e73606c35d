// A receiver that verifies its deliveries with code of others: the packages standardwebhooks and svix for v1,
// Node's own crypto for v1a. `node verify.js DIRECTORY`, in which the packages are installed; the first line
// of standard input is {"secrets": [whsec_...], "publicKeys": [base64, ...]}. It writes a line of JSON with its
// port, then one for each request with what each made of it: "ok", or why not.
'use strict';
const crypto = require('crypto');
const http = require('http');
const path = require('path');
const readline = require('readline');

const load = (name) => require(path.join(process.argv[2], 'node_modules', name)).Webhook;
const libraries = { standardwebhooks: load('standardwebhooks'), svix: load('svix') };
const ED25519_PREFIX = Buffer.from('302a300506032b6570032100', 'hex'); // of a public key in DER
const write = (value) => process.stdout.write(JSON.stringify(value) + '\n');

function attempt(check) {
  try {
    return check() === false ? 'does not verify' : 'ok';
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}

function verifyEd25519(publicKey, body, headers) {
  const der = Buffer.concat([ED25519_PREFIX, Buffer.from(publicKey, 'base64')]);
  const key = crypto.createPublicKey({ key: der, format: 'der', type: 'spki' });
  const signed = Buffer.concat([
    Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`), body]);
  return headers['webhook-signature'].split(' ').some((signature) => {
    const [version, value] = signature.split(',');
    return version === 'v1a' && crypto.verify(null, signed, key, Buffer.from(value, 'base64'));
  });
}

function verifyAll(given, body, headers) {
  const results = {};
  for (const [name, Webhook] of Object.entries(libraries)) {
    results[name] = given.secrets.map((secret) =>
      attempt(() => { new Webhook(secret).verify(body.toString(), headers); }));
  }
  results.ed25519 = given.publicKeys.map((key) => attempt(() => verifyEd25519(key, body, headers)));
  return results;
}

function answer(given, request, response) {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const body = Buffer.concat(parts);
    const changed = Buffer.concat([body, Buffer.from(' ')]);
    write({
      body: body.toString(),
      signature: request.headers['webhook-signature'],
      results: verifyAll(given, body, request.headers),
      ofChangedBody: verifyAll(given, changed, request.headers),
      ofChangedId: verifyAll(given, body, { ...request.headers, 'webhook-id': 'another' }),
    });
    response.writeHead(204).end();
  });
}

readline.createInterface({ input: process.stdin }).once('line', (line) => {
  const given = JSON.parse(line);
  const server = http.createServer((request, response) => answer(given, request, response));
  server.listen(0, '127.0.0.1', () => write({ port: server.address().port }));
});
process.stdin.on('end', () => process.exit(0));
