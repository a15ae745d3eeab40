// SPDX-License-Identifier: Apache-2.0

// Package podidentityagent is the EKS Pod Identity agent of a machine: it answers the AWS SDKs of pods at
// 169.254.170.23 and [fd00:ec2::23], port 80, with credentials of the role that their pod identity association gives
// them.
//
//	GET /v1/credentials     (Authorization: the pod's service account token)  -> AccessKeyId, SecretAccessKey, Token, AccountId, Expiration
//
//	pod ──► host header ──► token: form, audience, end ──► is it the pod's that asks? ──► cache ──► EKS Auth, with the machine's role
//
// It trusts EKS Auth, which verifies each token, and the results that containerd keeps of the pods' networks, by which
// it knows the pod behind an address. It uses the claims that it reads in a token only to refuse, never to grant: the
// whole token goes to EKS Auth, which decides.
//
// It refuses requests with another Host header than one of its two addresses, which a program that was tricked into
// fetching a URL by a name would send; tokens of another pod than the one whose address asks; tokens for another
// audience, or whose end has come; more than one question to EKS Auth each second for one token, and floods of one
// pod's: questions, connections (64 at once, fewer when few are left), and lines in the log.
//
// Credentials are remembered for as long as they are good. They are handed out without a question for a second; after
// that EKS Auth is asked again, so that what is revoked is refused within that second.
//
// What happens if
//
//	EKS Auth cannot be reached      credentials that are remembered are handed out as long as they are good, after 0.7 s at most, once a
//	                                second; the others wait for 4 s
//	EKS Auth refuses                what is remembered of the token is forgotten, and the pod is told the code and the reason
//	the agent is started again      nothing is kept on disk: it asks anew
//	credentials have half their life behind them   new ones are got before anybody asks, for as long as the token is good
//	libcni is just writing a file   it is read again within 0.1 s
//	the rules of port 80 cannot be made   the machine gets no address of the agent's, for it would lead to whoever has port 80
//	somebody flushes these rules    they are made again within 30 s, whatever answers meanwhile
//	the kernel has no IPv6          the address of that kind is left out
package podidentityagent
