// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
)

// Page cuts the page of a list that a request asks for, in the order of the items' keys, and makes the token of the
// next page, which is empty after the last. The token is good for the same parameters only. The page is never nil,
// because clients tell an empty list from a missing one.
func Page[T any](s *Service, call *awsfront.Call, parameters any, all []T, key func(T) string, most *int32, token string) (page []T, next string, err error) {
	size, err := nexttoken.LimitsOf(s.Name, call.Action).Size(most)
	if err != nil {
		return nil, "", err
	}
	scope := nexttoken.Scope{Account: call.Caller.Account(), Service: s.Name, Action: call.Action, Parameters: parameters}
	after, err := s.Pages.Open(scope, token)
	if err != nil {
		return nil, "", err
	}
	cut := nexttoken.Cut(all, key, after, size)
	if cut.Last != "" {
		if next, err = s.Pages.Seal(scope, cut.Last); err != nil {
			return nil, "", err
		}
	}
	if cut.Items == nil {
		cut.Items = []T{}
	}
	return cut.Items, next, nil
}
