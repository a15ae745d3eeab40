// SPDX-License-Identifier: Apache-2.0

package eksresource

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/clienttoken"
)

// Token is the client token of a request, as its object keeps it.
type Token struct {
	key     clienttoken.Key
	request clienttoken.Request
}

// TokenOf reads the client token of a request that makes one object.
func TokenOf(call *awsfront.Call, text string) (Token, error) {
	t := Token{key: clienttoken.Key{Account: call.Caller.Account(), Service: call.Service, Action: call.Action, Token: text}}
	if err := t.key.Check(); err != nil {
		return t, err
	}
	hash, err := clienttoken.Hash(call.Input, "clientRequestToken")
	t.request = clienttoken.Request{Parameters: hash, Count: 1}
	return t, err
}

// Mark puts the token on the object that the request makes.
func (t Token) Mark(object metav1.Object) {
	if t.key.Token == "" {
		return
	}
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[clienttoken.Label], annotations[clienttoken.Annotation] = t.key.Label(), t.request.Mark(0).String()
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}

// Made reports whether this very request has made the object before. A token that came with other parameters is
// refused.
func (t Token) Made(object metav1.Object) (bool, error) {
	if t.key.Token == "" || object.GetLabels()[clienttoken.Label] != t.key.Label() {
		return false, nil
	}
	mark, err := clienttoken.ParseMark(object.GetAnnotations()[clienttoken.Annotation])
	if err != nil {
		return false, nil //nolint:nilerr // somebody changed it: it is nobody's
	}
	decision, err := clienttoken.Decide(t.key, t.request, []clienttoken.Mark{mark})
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
