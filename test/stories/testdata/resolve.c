/* SPDX-License-Identifier: Apache-2.0 */

/* Resolves names by the C library that it is linked with, and prints a line for each: the name and its addresses, or why there are none. */

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all;
		int failed = getaddrinfo(argv[i], NULL, &hints, &all);
		printf("%s", argv[i]);
		if (failed) {
			printf(": %s\n", gai_strerror(failed));
			continue;
		}
		for (struct addrinfo *a = all; a; a = a->ai_next) {
			char text[INET6_ADDRSTRLEN] = "";
			const void *address = a->ai_family == AF_INET ? (const void *)&((struct sockaddr_in *)a->ai_addr)->sin_addr
								      : (const void *)&((struct sockaddr_in6 *)a->ai_addr)->sin6_addr;
			inet_ntop(a->ai_family, address, text, sizeof text);
			printf(" %s", text);
		}
		printf("\n");
		freeaddrinfo(all);
	}
	return 0;
}
