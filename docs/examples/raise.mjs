// Raises an event once, however often it has to be tried: the ClientId tells the server which one it is.
//
//     SVC_URL=http://localhost:8080 SVC_KEY=... node raise.mjs Shop.OrderPlaced order-17 '{"Total":12.50}'
import { setTimeout as sleep } from 'node:timers/promises';

const { SVC_URL, SVC_KEY } = process.env;
const headers = { 'Content-Type': 'application/json', ...(SVC_KEY && { Authorization: `apikey ${SVC_KEY}` }) };
const TRY_AGAIN = [408, 429, 500, 502, 503, 504, 507]; // what else is refused stays refused

async function raiseEvent(resource, clientId, payload) {
  const body = JSON.stringify({ Resource: resource, ClientId: clientId, Payload: payload });
  for (const wait of [1000, 2000, 4000, 8000, null]) {
    try {
      const answer = await fetch(`${SVC_URL}/Svc.Event`, { method: 'POST', headers, body, signal: AbortSignal.timeout(30000) });
      if (answer.ok) return (await answer.json())[0];
      if (!TRY_AGAIN.includes(answer.status) || wait === null) {
        throw Object.assign(new Error(await answer.text()), { refused: true });
      }
    } catch (error) { // nobody knows whether it arrived: the next try finds out
      if (error.refused || wait === null) throw error;
    }
    await sleep(wait);
  }
}

const event = await raiseEvent(process.argv[2], process.argv[3], JSON.parse(process.argv[4]));
console.log(event.Id, event.Webhooks);
