// SPDX-License-Identifier: Apache-2.0

// Package pageserver serves the console to a person's browser, over HTTP on a loopback address: pages, the same as JSON, a
// stream of events that keeps pages current. It reads, and makes what one page asks for, unless it is read-only.
//
// It trusts what the command gives it: a Source that reads with the rights of the user who runs the command, and says what an IAM identity
// that signed in may see of it. A reading is made once for all sessions; it is filtered for each session, and nothing that was filtered is kept for another
// one. It trusts nobody who connects, since every user of the host reaches a loopback address:
//
//	who has no session           gets nothing but the style sheet, the script and the icon. A session begins by a ticket of 256
//	                             bits, which is good once and for [ticketLife]
//	an IAM identity              begins a session by a token that is signed for this run, and good once. Its rights are asked again
//	                             after [rightsLife]; what it makes, the account judges as its own request
//	another site in the browser  the cookie is SameSite=Strict and HttpOnly; requests that a browser says come from another
//	                             site are refused; what is not GET needs the session's token besides (CSRF)
//	a name that leads here       the host of a request must be a loopback address or localhost, so DNS rebinding ends here
//	what machines wrote          is text (package page); the policy of contents admits no script, style or address but the
//	                             console's own, and Trusted Types no HTML that is not the server's
//	many or slow connections     are bounded in number, headers, bodies and time
//	many or slow queries         one of a session and [mostQueries] of all run at once, for [queryTime] at most
//
// What happens if
//
//	a read cannot be recorded    nothing is shown: 503
//	rights cannot be asked       an IAM identity sees nothing: 503; 403 once its key has ended
//	the installation is silent   pages stay as they were, with the time of what they show and why it is not newer
//	the command is interrupted   streams say so, requests are finished for [endTime], and all sessions are over
package pageserver
