// SPDX-License-Identifier: Apache-2.0

package pricing

import (
	"errors"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// Service is the name of the price list at the front.
const Service = "pricing"

// list has the action.
type list struct {
	awsresource.Account
	products []product
}

// Register adds the action to the front.
func Register(f *awsfront.Front, account awsresource.Account) error {
	if account.Pages == nil || account.Region == "" {
		return errors.New("the actions of the price list need a sealer of pages and a region")
	}
	l := &list{account, products(account.Region)}
	awsfront.Register(f, Service, "GetProducts", l.getProducts())
	return nil
}
