// Listens, but not where the platform says.
require('node:http')
  .createServer((request, response) => response.end('wrong port\n'))
  .listen(9999, () => console.log('listening on port 9999'));
process.on('SIGTERM', () => process.exit(0));
