// The peer that answers with the same body from Node's own http server: node_server.js PORT BODY
const http = require('http');
const [port, body] = process.argv.slice(2);
const headers = {'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body)};
const server = http.createServer((request, response) => {
  response.writeHead(200, headers);
  response.end(body);
});
server.keepAliveTimeout = 75000;
server.listen({port: Number(port), host: '127.0.0.1', backlog: 4096});
