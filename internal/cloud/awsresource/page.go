// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
)

// Asked is the page of a list that a request asks for.
type Asked struct {
	pages *nexttoken.Sealer
	scope nexttoken.Scope
	after string // the key of the last item of the page before
	size  int
}

// AskedPage reads how many items a request asks for at most, which may be nil, and the token of its page, which is
// empty for the first. The token is good for the same parameters only. The error is the service's own.
func AskedPage(a Account, call *awsfront.Call, parameters any, most *int32, token string) (Asked, error) {
	size, err := nexttoken.LimitsOf(call.Service, call.Action).Size(most)
	if err != nil {
		return Asked{}, err
	}
	scope := nexttoken.Scope{Account: call.Caller.Account(), Service: call.Service, Action: call.Action, Parameters: parameters}
	after, err := a.Pages.Open(scope, token)
	return Asked{a.Pages, scope, after, size}, err
}

// Cut cuts the page out of the list, in the order of the items' keys, and makes the token of the next page, which is
// empty after the last. The page is never nil, because clients tell an empty list from a missing one.
func Cut[T any](asked Asked, all []T, key func(T) string) (page []T, next string, err error) {
	cut := nexttoken.Cut(all, key, asked.after, asked.size)
	if cut.Last != "" {
		if next, err = asked.pages.Seal(asked.scope, cut.Last); err != nil {
			return nil, "", err
		}
	}
	if cut.Items == nil {
		cut.Items = []T{}
	}
	return cut.Items, next, nil
}

// Page is AskedPage and Cut, for an action that has nothing to refuse between them.
func Page[T any](a Account, call *awsfront.Call, parameters any, all []T, key func(T) string, most *int32, token string) (page []T, next string, err error) {
	asked, err := AskedPage(a, call, parameters, most, token)
	if err != nil {
		return nil, "", err
	}
	return Cut(asked, all, key)
}

// Itself is the key of a name.
func Itself(name string) string { return name }
