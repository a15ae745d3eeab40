// SPDX-License-Identifier: Apache-2.0

package live

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// zonalShiftActions shift the first cluster, whose machines go on.
func zonalShiftActions() []action {
	arn := func(w *world) *string {
		return aws.String("arn:aws:eks:" + w.config.Region + ":" + account + ":cluster/" + first)
	}
	id := func(w *world) *string { return aws.String(w.notes["shift"]) }
	return []action{
		{"ListManagedResources", func(w *world) {
			_, err := w.zonal.GetManagedResource(w.ctx(), &arczonalshift.GetManagedResourceInput{ResourceIdentifier: arn(w)})
			w.refused("ResourceNotFoundException", err)
			need(w.eks.UpdateClusterConfig(w.ctx(), &eks.UpdateClusterConfigInput{Name: aws.String(first), ZonalShiftConfig: &ekstypes.ZonalShiftConfigRequest{Enabled: aws.Bool(true)}}))
			waiter := eks.NewClusterActiveWaiter(w.eks)
			if err := waiter.Wait(w.ctx(), &eks.DescribeClusterInput{Name: aws.String(first)}, 2*time.Minute); err != nil {
				w.Fatal(err)
			}
			out := need(w.zonal.ListManagedResources(w.ctx(), &arczonalshift.ListManagedResourcesInput{}))
			if len(out.Items) != 1 || aws.ToString(out.Items[0].Name) != first || len(out.Items[0].AvailabilityZones) < 2 {
				w.Fatalf("%+v", out.Items)
			}
			w.notes["zone"] = out.Items[0].AvailabilityZones[1]
		}},
		{"StartZonalShift", func(w *world) {
			in := &arczonalshift.StartZonalShiftInput{ResourceIdentifier: arn(w), AwayFrom: aws.String(w.notes["zone"]), ExpiresIn: aws.String("1h"), Comment: aws.String("live")}
			out := need(w.zonal.StartZonalShift(w.ctx(), in))
			w.has(out, "ZonalShiftId", "ResourceIdentifier", "AwayFrom", "ExpiryTime", "StartTime", "Status", "Comment")
			w.notes["shift"] = aws.ToString(out.ZonalShiftId)
			_, err := w.zonal.StartZonalShift(w.ctx(), in)
			w.refused("ConflictException", err)
			in.AwayFrom = aws.String("use1-az9")
			_, err = w.zonal.StartZonalShift(w.ctx(), in)
			w.refused("ValidationException", err)
		}},
		{"GetManagedResource", func(w *world) {
			out := need(w.zonal.GetManagedResource(w.ctx(), &arczonalshift.GetManagedResourceInput{ResourceIdentifier: arn(w)}))
			if weight, ok := out.AppliedWeights[w.notes["zone"]]; !ok || weight != 0 || len(out.ZonalShifts) != 1 {
				w.Errorf("%+v", out)
			}
		}},
		{"UpdateZonalShift", func(w *world) {
			out := need(w.zonal.UpdateZonalShift(w.ctx(), &arczonalshift.UpdateZonalShiftInput{ZonalShiftId: id(w), ExpiresIn: aws.String("2h")}))
			if left := time.Until(*out.ExpiryTime); left < time.Hour || left > 2*time.Hour {
				w.Errorf("it expires in %s", left)
			}
		}},
		{"ListZonalShifts", func(w *world) {
			out := need(w.zonal.ListZonalShifts(w.ctx(), &arczonalshift.ListZonalShiftsInput{Status: types.ZonalShiftStatusActive}))
			if len(out.Items) != 1 || aws.ToString(out.Items[0].ZonalShiftId) != w.notes["shift"] {
				w.Errorf("%+v", out.Items)
			}
		}},
		{"ListAutoshifts", func(w *world) {
			if out := need(w.zonal.ListAutoshifts(w.ctx(), &arczonalshift.ListAutoshiftsInput{})); len(out.Items) != 0 {
				w.Errorf("%+v", out.Items)
			}
		}},
		{"CancelZonalShift", func(w *world) {
			out := need(w.zonal.CancelZonalShift(w.ctx(), &arczonalshift.CancelZonalShiftInput{ZonalShiftId: id(w)}))
			if out.Status != types.ZonalShiftStatusCanceled {
				w.Errorf("it is %s", out.Status)
			}
			_, err := w.zonal.CancelZonalShift(w.ctx(), &arczonalshift.CancelZonalShiftInput{ZonalShiftId: id(w)})
			w.refused("ConflictException", err)
		}},
	}
}
