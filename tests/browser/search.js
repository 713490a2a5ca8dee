// Copyright: Contributors to the scalebook project
// SPDX-License-Identifier: Apache-2.0
// Print the first hit of each question: node search.js SITE QUESTION... It runs the search of the site itself, a worker.
const fs = require("fs");
const vm = require("vm");

const [site, ...questions] = process.argv.slice(2);
const workers = `${site}/assets/javascripts/workers`;
const worker = fs.readdirSync(workers).find((name) => /^search.*\.js$/.test(name));
const answers = [];
let ask;
const context = vm.createContext({
  addEventListener: (_, listener) => (ask = listener),
  postMessage: (answer) => answers.push(answer),
  importScripts: () => undefined,
  setTimeout,
});
context.self = context;
vm.runInContext(fs.readFileSync(`${workers}/${worker}`, "utf8"), context);

(async () => {
  const { config, docs } = JSON.parse(fs.readFileSync(`${site}/search/search_index.json`, "utf8"));
  await ask({ data: { type: 0, data: { config, docs, options: { suggest: false } } } });
  for (const data of questions) {
    await ask({ data: { type: 2, data } });
    const { items } = answers.pop().data;
    console.log(items.length ? items[0][0].location : "nothing");
  }
})();
