// The public SDK for JavaScript, and the specification's JSON schema that it carries. One line of JSON in, one out:
// {"write": event, "mode": "binary" or "structured"} gives the message that the SDK sends;
// {"read": {"headers", "body"}} what it reads; {"judge": event} what the schema finds wrong.
"use strict";
const path = require("path");
const readline = require("readline");

const modules = path.join(process.argv[2], "node_modules");
const { CloudEvent, HTTP } = require(path.join(modules, "cloudevents"));
// Made of the specification's JSON schema, by ajv.
const judge = require(path.join(modules, "cloudevents", "dist", "schema", "v1.js"));

function answer(asked) {
  if (asked.write)
    return HTTP[asked.mode](new CloudEvent(asked.write));
  if (asked.read)
    return HTTP.toEvent(asked.read);
  return judge(asked.judge) ? [] : judge.errors.map((error) => `${error.instancePath} ${error.message}`);
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  let result;
  try {
    result = { result: answer(JSON.parse(line)) };
  } catch (error) {
    result = { error: String(error) };
  }
  process.stdout.write(JSON.stringify(result) + "\n");
});
