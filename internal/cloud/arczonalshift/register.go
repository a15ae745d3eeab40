// SPDX-License-Identifier: Apache-2.0

package arczonalshift

import (
	"errors"
	"fmt"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/keylock"
)

const service = "arc-zonal-shift"

// api has the actions.
type api struct {
	awsresource.Account

	region region.Region
	// locks have one change at a time of a cluster's shifts.
	locks keylock.Locks
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, account awsresource.Account) error {
	if account.Management == nil || account.Pages == nil {
		return errors.New("the actions of zonal shift need a client of the management plane and a sealer of pages")
	}
	own, err := region.Find(account.Region)
	if err != nil {
		return fmt.Errorf("the actions of zonal shift: %w", err)
	}
	a := &api{Account: account, region: own}
	awsfront.Register(f, service, "StartZonalShift", a.startZonalShift())
	awsfront.Register(f, service, "UpdateZonalShift", a.updateZonalShift())
	awsfront.Register(f, service, "CancelZonalShift", a.cancelZonalShift())
	awsfront.Register(f, service, "ListZonalShifts", a.listZonalShifts())
	awsfront.Register(f, service, "GetManagedResource", a.getManagedResource())
	awsfront.Register(f, service, "ListManagedResources", a.listManagedResources())
	awsfront.Register(f, service, "ListAutoshifts", a.listAutoshifts())
	return nil
}
