// Goes through the log of attempts page by page, oldest first. Nothing is left out and nothing comes twice,
// whatever is added meanwhile: the next page begins behind the last ObjectNo.
//
//     SVC_URL=http://localhost:8080 SVC_KEY=... node page.mjs 'IsSuccess=false'
const { SVC_URL, SVC_KEY } = process.env;
const headers = { Accept: 'application/json', ...(SVC_KEY && { Authorization: `apikey ${SVC_KEY}` }) };
const PAGE = 500;

async function* pages(conditions) {
  let target = `/Svc.Admin.WebhookLog/${conditions || '_'}/limit=${PAGE}`;
  while (target !== null) {
    const answer = await fetch(SVC_URL + target, { headers, signal: AbortSignal.timeout(30000) });
    if (!answer.ok) throw new Error(await answer.text());
    if (answer.status === 204) return; // none at all
    yield await answer.json();
    target = answer.headers.get('Svc-pager'); // null on the last page
  }
}

for await (const page of pages(process.argv[2])) {
  for (const attempt of page) {
    console.log(attempt.Time, attempt.Destination, attempt.StatusCode, attempt.Error ?? '');
  }
}
