// A client as docs/grpc.md shows it. Prints one JSON object: the text, and what became of a field that does not exist.
// Usage: node client.js SOCKET DEFINITIONS
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [socket, definitions] = process.argv.slice(2);
// Without keepCase, the loader wants camelCase, and drops the names of the definition without a word.
const definition = loader.loadSync("tandem/v1/tandem.proto", {
  includeDirs: [definitions],
  keepCase: true,
  longs: Number,
  enums: String,
  defaults: true,
  oneofs: true,
});

// Nothing in the loader refuses a name that it does not know, so this does.
function strict(type, value) {
  const fields = definition[type].type.field;
  for (const [name, part] of Object.entries(value)) {
    const field = fields.find((field) => field.name === name);
    if (!field) throw new TypeError(`${type} has no field ${name}`);
    const inner = `tandem.v1.${(field.typeName || "").replace(/^\.?(tandem\.v1\.)?/, "")}`;
    if (field.type === "TYPE_MESSAGE" && definition[inner]) {
      [part].flat().forEach((part) => strict(inner, part));
    }
  }
  return value;
}

const { tandem } = grpc.loadPackageDefinition(definition);
const service = new tandem.v1.TandemService(`unix:${socket}`, grpc.credentials.createInsecure(), {
  "grpc.default_authority": "localhost",
});

const said = { text: "", refused: [] };
for (const wrong of [{ samplingParams: { max_tokens: 3 } }, { sampling_params: { maxTokens: 3 } }]) {
  try {
    strict("tandem.v1.GenerateRequest", { text: "x", ...wrong });
  } catch (error) {
    said.refused.push(error.message);
  }
}

const request = strict("tandem.v1.GenerateRequest", {
  chat: { messages: [{ role: "user", content: "Why is the sky blue?" }] },
  sampling_params: { max_tokens: 12, ignore_eos: true },
});
const stream = service.generate(request, { deadline: Date.now() + 300_000 });
stream.on("data", (response) => {
  if (response.response === "chunk") said.text += response.chunk.text;
  else said.completion_tokens = response.complete.usage.completion_tokens;
});
stream.on("error", (error) => {
  console.error(error.message);
  process.exitCode = 1;
});
stream.on("end", () => {
  console.log(JSON.stringify(said));
  service.close();
});
