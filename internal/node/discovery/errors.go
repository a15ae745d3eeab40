// SPDX-License-Identifier: Apache-2.0

package discovery

// Reason is why a cluster is not believed.
type Reason string

// The reasons.
const (
	BadConfig    Reason = "BadConfig"    // the settings make no sense
	BadEndpoint  Reason = "BadEndpoint"  // not https, not HOST:PORT
	BadPin       Reason = "BadPin"       // a hash that is none
	NoPin        Reason = "NoPin"        // a token without a hash
	Unreachable  Reason = "Unreachable"  // nobody answered in time
	Refused      Reason = "Refused"      // somebody answered with something else than cluster-info
	NoSignature  Reason = "NoSignature"  // the cluster does not know the token (any more)
	BadSignature Reason = "BadSignature" // the cluster knows another token of this ID
	Malformed    Reason = "Malformed"    // cluster-info, or the file, is not what it should be
	WrongCA      Reason = "WrongCA"      // the authority is not the pinned one
	WrongServer  Reason = "WrongServer"  // the server is not vouched for by that authority
	ClockSkew    Reason = "ClockSkew"    // this machine's clock, or the server's, is wrong
	Changed      Reason = "Changed"      // the second answer differs from the first
	BadFile      Reason = "BadFile"      // the file cannot be read
)

// Error is a cluster that is not believed: the check that failed, the evidence, the fix.
type Error struct {
	Reason  Reason
	Message string
	Err     error // the cause; may be nil. Message tells it already.
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

func refuse(reason Reason, message string) error { return &Error{Reason: reason, Message: message} }
