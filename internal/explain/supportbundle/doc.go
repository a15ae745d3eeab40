// SPDX-License-Identifier: Apache-2.0

// Package supportbundle makes the archive that somebody sends to have an installation explained: the diagnosis with its
// evidence, the objects that it was made from, the ends of logs, versions. It is a tar file, compressed by gzip.
//
// The archive has no secret, by three steps. Objects and files that hold secrets are not read: contents of Secrets, pods'
// logs, files of the state directory other than logs. Fields that may hold secrets are left out: user data, bodies of
// audit events, variables of containers. All the rest goes through package redaction. The file contents.json lists each
// file, and what was left out of the archive and why.
//
// What happens if
//
//	a log cannot be read          contents.json says so, and the other files are written
//	there is too much             the archive has a bound, as each log and each list of objects has; contents.json says what did not fit
//	a file has the name already   Save fails, and the file stays as it is
//	it is killed while it writes  no file has the name; a file beside it that begins with .new- may be left
package supportbundle
