// SPDX-License-Identifier: Apache-2.0

package efsresource

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
)

// Page makes a page of a list that is sorted by its keys.
func Page[T any](s *Store, call *awsfront.Call, parameters []any, all []T, asked *int32, token string, key func(T) string) (page []T, next string, err error) {
	size, err := nexttoken.LimitsOf(Service, call.Action).Size(asked)
	if err != nil {
		return nil, "", err
	}
	scope := nexttoken.Scope{Account: call.Caller.Account(), Service: Service, Action: call.Action, Parameters: parameters}
	after, err := s.Pages.Open(scope, token)
	if err != nil {
		return nil, "", err
	}
	made := nexttoken.Cut(all, key, after, size)
	if made.Last != "" {
		next, err = s.Pages.Seal(scope, made.Last)
	}
	return made.Items, next, err
}
