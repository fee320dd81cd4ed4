// Ends at once, with a reason.
console.error('cannot start: no database named "orders"');
process.exit(1);
