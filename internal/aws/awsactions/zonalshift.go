// SPDX-License-Identifier: Apache-2.0

package awsactions

func zonalShiftActions() []Action {
	cluster, key := []string{"cluster"}, []string{"arc-zonal-shift:ResourceIdentifier"}
	const (
		practice  = "Muster starts no practice runs: start a zonal shift"
		autoshift = "nobody watches the zones of one host: start a zonal shift"
	)
	return []Action{
		{Name: "StartZonalShift", Mark: Real, Resources: cluster, Keys: key},
		{Name: "UpdateZonalShift", Mark: Real, Resources: cluster, Keys: key},
		{Name: "CancelZonalShift", Mark: Real, Resources: cluster, Keys: key},
		{Name: "ListZonalShifts", Mark: Real},
		{Name: "GetManagedResource", Mark: Real, Resources: cluster, Keys: key},
		{Name: "ListManagedResources", Mark: Real},
		{Name: "ListAutoshifts", Mark: Record},
		{Name: "UpdateZonalAutoshiftConfiguration", Mark: Refused, Reason: autoshift},
		{Name: "GetAutoshiftObserverNotificationStatus", Mark: Refused, Reason: autoshift},
		{Name: "UpdateAutoshiftObserverNotificationStatus", Mark: Refused, Reason: autoshift},
		{Name: "CreatePracticeRunConfiguration", Mark: Refused, Reason: practice},
		{Name: "UpdatePracticeRunConfiguration", Mark: Refused, Reason: practice},
		{Name: "DeletePracticeRunConfiguration", Mark: Refused, Reason: practice},
		{Name: "StartPracticeRun", Mark: Refused, Reason: practice},
		{Name: "CancelPracticeRun", Mark: Refused, Reason: practice},
	}
}

func zonalShiftResources() []Resource {
	return []Resource{
		{Type: "cluster", ARN: "arn:${Partition}:eks:${Region}:${Account}:cluster/${ClusterName}"},
	}
}
