// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/clienttoken"
)

// Token is the client token of a request, as the object that it makes keeps it.
type Token struct {
	Key     clienttoken.Key
	Request clienttoken.Request
}

// TokenOf reads the client token of a request that makes one object. Without names the parameters that do not count
// when two requests are compared: the token itself, and DryRun where there is one. The error is the service's own for a
// token that is no token.
func TokenOf(call *awsfront.Call, text string, without ...string) (Token, error) {
	t := Token{Key: clienttoken.Key{Account: call.Caller.Account(), Service: call.Service, Action: call.Action, Token: text}}
	if err := t.Key.Check(); err != nil {
		return t, err
	}
	hash, err := clienttoken.Hash(call.Input, without...)
	t.Request = clienttoken.Request{Parameters: hash, Count: 1}
	return t, err
}

// Labels are those by which the object of the token is found, nil without a token.
func (t Token) Labels() map[string]string {
	if t.Key.Token == "" {
		return nil
	}
	return map[string]string{clienttoken.Label: t.Key.Label()}
}

// Mark puts the token on the object that the request makes.
func (t Token) Mark(object metav1.Object) {
	if t.Key.Token == "" {
		return
	}
	object.SetLabels(with(object.GetLabels(), clienttoken.Label, t.Key.Label()))
	object.SetAnnotations(with(object.GetAnnotations(), clienttoken.Annotation, t.Request.Mark(0).String()))
}

func with(words map[string]string, key, value string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, words)
	all[key] = value
	return all
}

// Made reports whether this very request has made the object before. A token that came with other parameters is
// refused.
func (t Token) Made(object metav1.Object) (bool, error) {
	if t.Key.Token == "" || object.GetLabels()[clienttoken.Label] != t.Key.Label() {
		return false, nil
	}
	mark, err := clienttoken.ParseMark(object.GetAnnotations()[clienttoken.Annotation])
	if err != nil {
		return false, nil //nolint:nilerr // somebody changed it: it is nobody's
	}
	decision, err := clienttoken.Decide(t.Key, t.Request, []clienttoken.Mark{mark})
	return decision.Repeated, err
}

// CheckMade refuses a request to make an object that is there, with the error exists, unless this very request made it.
func (t Token) CheckMade(there metav1.Object, exists error) error {
	again, err := t.Made(there)
	if err == nil && !again {
		return exists
	}
	return err
}
