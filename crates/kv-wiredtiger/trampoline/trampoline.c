/*
 * The extension through which a program registers compressors of its own while WiredTiger opens.
 *
 * The library loads extensions by the name of a file, before it recovers, and looks up a symbol in
 * them; a program exports none. So this object has the symbol, and calls what it was told to.
 */

#include <errno.h>
#include <stddef.h>

typedef int (*registrar)(void *connection);

static registrar call_on_open;

/* Told once, before the first store is opened. */
void romanesco_call_on_open(registrar function);
void romanesco_call_on_open(registrar function)
{
	call_on_open = function;
}

/* The symbol that WiredTiger calls with the connection it is opening. */
int wiredtiger_extension_init(void *connection, void *config);
int wiredtiger_extension_init(void *connection, void *config)
{
	(void)config;
	return call_on_open == NULL ? EINVAL : call_on_open(connection);
}
