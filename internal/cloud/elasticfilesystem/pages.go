// SPDX-License-Identifier: Apache-2.0

package elasticfilesystem

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
)

// cut makes a page of a list that is sorted by its keys.
func cut[T any](a *api, call *awsfront.Call, parameters []any, all []T, asked *int32, token string, key func(T) string) (page []T, next string, err error) {
	size, err := nexttoken.LimitsOf(service, call.Action).Size(asked)
	if err != nil {
		return nil, "", err
	}
	scope := nexttoken.Scope{Account: call.Caller.Account(), Service: service, Action: call.Action, Parameters: parameters}
	after, err := a.Pages.Open(scope, token)
	if err != nil {
		return nil, "", err
	}
	made := nexttoken.Cut(all, key, after, size)
	if made.Last != "" {
		next, err = a.Pages.Seal(scope, made.Last)
	}
	return made.Items, next, err
}
