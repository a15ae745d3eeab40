// SPDX-License-Identifier: Apache-2.0

// A PKCS #11 library that is another one, $FAULTY_MODULE, until a file $FAULTY_DIRECTORY/next names a fault: the next signature
// takes the file away and has the fault. Every login leaves a byte in $FAULTY_DIRECTORY/logins.

#include "pkcs11go.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CK_FUNCTION_LIST faulty;
static CK_FUNCTION_LIST_PTR real;
static CK_SLOT_ID slot;
static int flip;

static void name_file(char *out, size_t size, const char *file) {
	snprintf(out, size, "%s/%s", getenv("FAULTY_DIRECTORY"), file);
}

// take reads the fault; of many that sign at once only one gets it.
static void take(char *fault, size_t size) {
	char next[4096], mine[4096 + 32];
	name_file(next, sizeof next, "next");
	snprintf(mine, sizeof mine, "%s.%p", next, (void *)fault);
	fault[0] = 0;
	if (rename(next, mine)) return;
	FILE *f = fopen(mine, "r");
	if (!f || !fgets(fault, (int)size, f)) exit(3);
	fclose(f);
	remove(mine);
}

static CK_RV sign(CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG size, CK_BYTE_PTR signature, CK_ULONG_PTR length) {
	char fault[32];
	take(fault, sizeof fault);
	if (!strcmp(fault, "crash")) *(volatile int *)0 = 1;
	if (!strcmp(fault, "hang")) for (;;) pause();
	if (!strcmp(fault, "removed")) return CKR_DEVICE_REMOVED;
	if (!strcmp(fault, "memory")) return CKR_DEVICE_MEMORY;
	if (!strcmp(fault, "lose")) real->C_CloseAllSessions(slot);
	CK_RV result = real->C_Sign(session, data, size, signature, length);
	if (!signature && !strcmp(fault, "flip")) flip = 1; // the next call asks for more than the length
	else if (signature && flip) flip = 0, signature[0] ^= 1;
	return result;
}

static CK_RV login(CK_SESSION_HANDLE session, CK_USER_TYPE user, CK_UTF8CHAR_PTR pin, CK_ULONG length) {
	char logins[4096];
	name_file(logins, sizeof logins, "logins");
	int fd = open(logins, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || write(fd, ".", 1) != 1) exit(3);
	close(fd);
	return real->C_Login(session, user, pin, length);
}

static CK_RV open_session(CK_SLOT_ID id, CK_FLAGS flags, CK_VOID_PTR app, CK_NOTIFY notify, CK_SESSION_HANDLE_PTR session) {
	slot = id;
	return real->C_OpenSession(id, flags, app, notify, session);
}

// Some libraries believe that standard input and output are theirs.
static CK_RV initialize(CK_VOID_PTR args) {
	char line[16];
	printf("Welcome! Your PIN?\n");
	fflush(stdout);
	if (fgets(line, sizeof line, stdin)) exit(3);
	return real->C_Initialize(args);
}

CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR list) {
	void *library = dlopen(getenv("FAULTY_MODULE"), RTLD_NOW);
	CK_C_GetFunctionList get = library ? (CK_C_GetFunctionList)dlsym(library, "C_GetFunctionList") : 0;
	if (!get || get(&real) != CKR_OK) return CKR_GENERAL_ERROR;
	faulty = *real;
	faulty.C_Initialize = initialize;
	faulty.C_OpenSession = open_session;
	faulty.C_Login = login;
	faulty.C_Sign = sign;
	*list = &faulty;
	return CKR_OK;
}
