// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
)

// page cuts the page out of a list that a request asks for, and makes the token of the next.
func page[T any](a *api, call *awsfront.Call, parameters any, items []T, key func(T) string, token string, most *int32) (cut []T, next string, err error) {
	size, err := nexttoken.LimitsOf(service, call.Action).Size(most)
	if err != nil {
		return nil, "", err
	}
	scope := nexttoken.Scope{Account: call.Caller.Account(), Service: service, Action: call.Action, Parameters: parameters}
	after, err := a.Pages.Open(scope, token)
	if err != nil {
		return nil, "", err
	}
	p := nexttoken.Cut(items, key, after, size)
	if p.Last != "" {
		if next, err = a.Pages.Seal(scope, p.Last); err != nil {
			return nil, "", err
		}
	}
	if p.Items == nil {
		p.Items = []T{} // clients tell an empty list from none
	}
	return p.Items, next, nil
}

func itself(name string) string { return name }
