const http = require('node:http');

const port = process.env.PORT ?? 8080;
const server = http.createServer((request, response) => {
  console.log(`${request.method} ${request.url}`);
  if (request.url === '/services') {
    const services = Object.values(JSON.parse(process.env.VCAP_SERVICES ?? '{}')).flat();
    response.end(`${services.map(({ name }) => name).join('\n')}\n`);
  } else {
    response.end(`hello from instance ${process.env.CF_INSTANCE_INDEX ?? 0}\n`);
  }
});
server.listen(port, () => console.log(`hello listens on port ${port}`));
process.on('SIGTERM', () => server.close(() => process.exit(0)));
