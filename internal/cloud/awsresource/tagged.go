// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
)

// Tagged is a resource that has tags.
type Tagged struct {
	ARN string
	// Type is the type as the Resource Groups Tagging API names it, such as ec2:vpc.
	Type string
	Tags v1alpha1.Tags
}

// TaggedList returns the resources of a service that have tags. The service of the call is the one whose resources are
// listed.
type TaggedList func(context.Context, *awsfront.Call) ([]Tagged, error)

// TagSources has the lists of all services. The zero value is empty. Services are added before the first request.
type TagSources struct {
	services []string
	lists    []TaggedList
}

// Add adds the list of a service. A nil TagSources keeps nothing: nobody asks it.
func (s *TagSources) Add(service string, list TaggedList) {
	if s != nil {
		s.services, s.lists = append(s.services, service), append(s.lists, list)
	}
}

// All returns the resources of all services that have tags, for a call of another service.
func (s *TagSources) All(ctx context.Context, call *awsfront.Call) ([]Tagged, error) {
	var all []Tagged
	for i, list := range s.lists {
		of := *call
		of.Service = s.services[i]
		some, err := list(ctx, &of)
		if err != nil {
			return nil, err
		}
		for _, t := range some {
			if len(t.Tags) > 0 {
				all = append(all, t)
			}
		}
	}
	return all, nil
}
