// SPDX-License-Identifier: Apache-2.0

package tagging

import (
	"errors"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// Service is the name of the API in signatures, and at the front. Policies name its actions tag:ACTION.
const Service = "tagging"

// api has the actions.
type api struct{ awsresource.Account }

// Register adds the actions to the front.
func Register(f *awsfront.Front, account awsresource.Account) error {
	if account.Pages == nil || account.TagSources == nil {
		return errors.New("the actions of the tagging API need a sealer of pages and the lists of tagged resources")
	}
	a := &api{account}
	awsfront.Register(f, Service, "GetResources", a.getResources())
	awsfront.Register(f, Service, "GetTagKeys", a.getTagKeys())
	awsfront.Register(f, Service, "GetTagValues", a.getTagValues())
	return nil
}
