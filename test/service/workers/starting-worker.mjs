/* A worker that was started, and does not listen on all of its addresses yet. It forgets nothing. */
process.send?.({ type: 'ready' });
process.on('message', () => undefined);
process.on('disconnect', () => process.exit());
