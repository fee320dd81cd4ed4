const http = require('node:http');

const port = process.env.PORT ?? 8080;
// The name of the function is misspelt: this version ends as soon as it starts.
const server = http.creatServer((request, response) => {
  response.end('hello from a version that never serves\n');
});
server.listen(port, () => console.log(`broken listens on port ${port}`));
