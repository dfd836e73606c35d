/* Code that verifies signatures, for whoever receives. */
import { button, code, fill, h } from "./dom.js";

const node = `import { createHmac, timingSafeEqual } from "node:crypto";

// body: the bytes as they came; headers: with names in lower case
export function isGenuine(headers, body, secret) {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const at = Number(headers["webhook-timestamp"]);
  if (!(Math.abs(Date.now() / 1000 - at) < 300)) return false;
  const mine = createHmac("sha256", key)
    .update(\`\${headers["webhook-id"]}.\${at}.\`).update(body).digest();
  return headers["webhook-signature"].split(" ").some((one) => {
    const theirs = Buffer.from(one.replace(/^v1,/, ""), "base64");
    return one.startsWith("v1,") && theirs.length === mine.length && timingSafeEqual(theirs, mine);
  });
}
`;

const python = `import base64, hashlib, hmac, time

# body: the bytes as they came
def is_genuine(headers, body, secret):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    at = headers.get("webhook-timestamp", "")
    if not at.isdecimal() or abs(time.time() - int(at)) > 300:
        return False
    signed = f"{headers['webhook-id']}.{at}.".encode() + body
    mine = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(mine, one) for one in headers["webhook-signature"].split())
`;

const go = `package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// body: the bytes as they came
func IsGenuine(h http.Header, body []byte, secret string) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	at, bad := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || bad != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "."))
	mac.Write(body)
	mine := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, one := range strings.Fields(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(one), []byte(mine)) {
			return true
		}
	}
	return false
}
`;

const languages = { Node: node, Python: python, Go: go };

export function verification() {
  const place = h("div", {});
  const buttons = Object.keys(languages).map((name) => button(name, () => choose(name)));
  const choose = (name) => {
    for (const b of buttons) b.setAttribute("aria-pressed", String(b.textContent === name));
    fill(place, code(languages[name], `${name} code`));
  };
  choose("Node");
  return h("div", {}, h("div", { class: "bar", role: "group", "aria-label": "Language" }, buttons), place);
}
