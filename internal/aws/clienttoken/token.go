// SPDX-License-Identifier: Apache-2.0

// Package clienttoken has the rule by which a request that is sent twice takes effect once: the idempotency of client
// tokens.
//
// A client that got no answer sends its request again, with the same token. The token is kept on what the first request
// made, and nowhere else, so whatever survives a crash survives with it:
//
//	a label        the hash of account, service, action and token, by which the object is found
//	an annotation  the hash of the parameters, and which of how many objects it is
//
// The order of things, with one lock for each Key in the process that serves requests:
//
//  1. the caller is known and allowed, and the parameters are read;
//  2. objects with the label are listed, from the API server and not from a cache;
//  3. Decide says which are missing: all (a new request), some (the service was killed between two), none (a repeated one), or why not;
//  4. the missing ones are made, each with the label and annotation in the very write that makes it;
//  5. the answer is put together from the objects as they are now, so both requests have the same one.
//
// What happens if
//
//	the service is killed before a write       nothing was done: the second request is a new one
//	it is killed between write and answer      the second request finds the object
//	it is killed between two of three writes   the second request makes the third
//	the same token comes with other parameters refused, in the service's own words
//	the object was deleted meanwhile           the token is forgotten with it, and the request is a new one
//	some instances are shown as terminated     they count as made: none is launched in their place
//	all instances are shown as terminated      refused with Terminated
//	two requests come at once                  the lock makes them one after the other
//	a request has no token                     it is new
package clienttoken

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
)

// The label and the annotation of objects.
const (
	Label      = "muster.dev/client-token"
	Annotation = "muster.dev/client-token-request"
)

// maxToken is how many characters a token may have, by service. EC2's are 64, which its reference says; the other
// services say nothing.
const (
	maxEC2   = 64
	maxOther = 128
)

// MaxCount is how many objects one request may make.
const MaxCount = 1000

// Key is a token with the account, service and action that it is good for. The same token sent with another action is
// another Key.
type Key struct {
	Account, Service, Action, Token string
}

// Check refuses a token that is too long or has other than visible ASCII characters.
func (k Key) Check() error {
	most := maxOther
	if k.Service == "ec2" {
		most = maxEC2
	}
	visible := !strings.ContainsFunc(k.Token, func(r rune) bool { return r <= ' ' || r > '~' })
	if len(k.Token) > most || !visible {
		return awsfault.Errorf(badCode(k.Service), "The client token has %d bytes: it must be at most %d visible ASCII characters", len(k.Token), most)
	}
	return nil
}

// Label is the value of the label of objects that a request with the token makes. Empty without a token: such objects
// have no label.
func (k Key) Label() string {
	if k.Token == "" {
		return ""
	}
	hash := sha256.New()
	for _, part := range []string{k.Account, k.Service, k.Action, k.Token} {
		fmt.Fprintf(hash, "%d:%s,", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil))[:40]
}

// Request is what a request with a token asks for.
type Request struct {
	Parameters string // their hash, by Hash
	Count      int    // of objects that it makes, MaxCount at most; 1 for most
}

// Hash is the hash of a request's parameters. They are the decoded ones, without the token and DryRun, so that the
// order in which a client writes them does not count.
func Hash(parameters map[string]any, without ...string) (string, error) {
	counted := maps.Clone(parameters)
	for _, name := range without {
		delete(counted, name)
	}
	text, err := json.Marshal(counted) // sorts keys
	if err != nil {
		return "", fmt.Errorf("hashing the parameters of a request: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:40], nil
}

// Mark is the annotation of one object.
type Mark struct {
	Parameters string
	Index      int // of the object, from 0
	Count      int
}

// Mark is the annotation of a request's object.
func (r Request) Mark(index int) Mark { return Mark{r.Parameters, index, r.Count} }

// String is the annotation's value.
func (m Mark) String() string { return fmt.Sprintf("%s %d/%d", m.Parameters, m.Index, m.Count) }

// ParseMark reads an annotation.
func ParseMark(text string) (Mark, error) {
	parameters, rest, _ := strings.Cut(text, " ")
	first, second, _ := strings.Cut(rest, "/")
	index, err := strconv.Atoi(first)
	count, other := strconv.Atoi(second)
	m := Mark{parameters, index, count}
	if err != nil || other != nil || index < 0 || index >= count || count > MaxCount || parameters == "" || m.String() != text {
		return Mark{}, fmt.Errorf("invalid annotation %s %.100q: it must be HASH INDEX/COUNT", Annotation, text)
	}
	return m, nil
}

// Decision says what is left to do of a request.
type Decision struct {
	// Missing are the indexes of objects that must be made. If it is empty, the request was done before, and its answer
	// is made from the objects.
	Missing []int
	// Repeated reports whether a request with the token was here before.
	Repeated bool
}

// Decide compares a request with the objects that have its label. An object that is on its way out counts: what it is
// of was done.
func Decide(key Key, request Request, found []Mark) (Decision, error) {
	if key.Token == "" {
		found = nil
	}
	have := make([]bool, max(request.Count, 1))
	for _, m := range found {
		if m.Parameters != request.Parameters || m.Count != len(have) {
			return Decision{}, Mismatch(key.Service)
		}
		have[m.Index] = true
	}
	decision := Decision{Repeated: len(found) > 0}
	for i, there := range have {
		if !there {
			decision.Missing = append(decision.Missing, i)
		}
	}
	return decision, nil
}

// Mismatch is what a service says of a token that came with other parameters.
func Mismatch(service string) *awsfault.Error {
	const text = "The client token is that of an earlier request with other parameters: send the same request again, or use another token"
	switch service {
	case "ec2", "ssm":
		return awsfault.Errorf("IdempotentParameterMismatch", text)
	case "eks":
		return awsfault.Errorf("InvalidRequestException", text)
	case "fis":
		return awsfault.Errorf("ConflictException", text)
	default:
		return awsfault.Errorf("InvalidParameterValue", text)
	}
}

// Terminated is what RunInstances says of a token whose instances are gone.
func Terminated() *awsfault.Error {
	return awsfault.Errorf("IdempotentInstanceTerminated", "The client token is of a request whose instances have been terminated: send the request with another one")
}

func badCode(service string) string {
	switch service {
	case "ec2":
		return "InvalidParameterValue"
	case "fis":
		return "ValidationException"
	}
	return "InvalidParameterException"
}
