// SPDX-License-Identifier: Apache-2.0

// Package auditlog keeps the lines of an API server's audit log that matter for security in a file of their own, so
// that everyday requests do not push them out.
//
// Kept are reads and changes of Secrets, exec, attach, port-forward, proxied requests, ephemeral containers, tokens of
// service accounts, changes of CSRs and of RBAC, requests of an impersonated user, and refusals (401 and 403). An audit
// policy cannot select the last two: it is asked before the answer is known. So the API server records all requests
// (component's audit policy), and a [Splitter] copies what [kept] selects. An API server has one log file and one
// policy for all of its backends; its webhook backend drops lines while nobody answers, and a file does not.
//
// The kept file is its own record of how far the API server's log was read: the line that was written last is looked
// for in the API server's log, and reading goes on after it. There is no other state.
//
// What happens if
//
//	the service dies, or restarts                  it goes on after the last line: no line is missing, and none is there twice
//	it dies while it writes                        half a line is cut off, and written again
//	the disk is full                               the same, every 10 seconds until there is room; the API server's own log has its lines meanwhile
//	the API server rotates its log meanwhile       its older parts are read, in their order
//	it rotates away what was not read              a line of kind Gap says between which moments lines may be missing
//	there are more lines than the file may hold    the oldest part goes; [State] says since when the log is whole
//	strangers make a line very long                it is kept without its objects and with the beginning of its URI and user agent
//
// It trusts the API server's log, which only its owner can write.
package auditlog
