// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/componentconfig"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/platform/release"
)

type versionsInput struct {
	ClusterType             string
	MaxResults              *int32
	NextToken               string
	DefaultOnly, IncludeAll *bool
	ClusterVersions         []string
	Status, VersionStatus   string
}

type versionsOutput struct {
	ClusterVersions []clusterVersion
	NextToken       string
}

type clusterVersion struct {
	ClusterVersion, ClusterType, DefaultPlatformVersion, KubernetesPatchVersion, Status, VersionStatus string
	DefaultVersion                                                                                     *bool
	ReleaseDate, EndOfStandardSupportDate, EndOfExtendedSupportDate                                    time.Time
	ControlPlaneComponentConfig                                                                        *componentconfig.Version
}

func (a *API) describeClusterVersions() awsfront.Spec[versionsInput, versionsOutput] {
	return awsfront.Spec[versionsInput, versionsOutput]{
		About: func(_ context.Context, call *awsfront.Call, _ *versionsInput) ([]awsfront.Target, error) {
			return []awsfront.Target{{Resource: a.store.ARN(call, "*")}}, nil
		},
		Do: func(_ context.Context, call *awsfront.Call, in *versionsInput) (*versionsOutput, error) {
			if in.ClusterType != "" && in.ClusterType != eksresource.Service {
				return nil, awsfault.Errorf(eksfault.InvalidParameter, "There are no clusters of type %.40q here: leave clusterType out, or write eks", in.ClusterType)
			}
			all := slices.DeleteFunc(versions(release.All(), call.Now), func(v clusterVersion) bool {
				if eksresource.Deref(in.DefaultOnly, false) && !*v.DefaultVersion {
					return true
				}
				return len(in.ClusterVersions) > 0 && !slices.Contains(in.ClusterVersions, v.ClusterVersion) ||
					in.Status != "" && !strings.EqualFold(in.Status, v.Status) || in.VersionStatus != "" && in.VersionStatus != v.VersionStatus
			})
			out := &versionsOutput{}
			var err error
			out.ClusterVersions, out.NextToken, err = awsresource.Page(a.store.Account, call, []any{in.ClusterVersions, in.Status, in.VersionStatus}, all,
				func(v clusterVersion) string { return v.ClusterVersion }, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}

// versions are releases as EKS tells of them. Releases that are not built are among them, since
// tools look for versions of their own in the list (eksctl for its default, 1.34).
func versions(releases release.List, now time.Time) []clusterVersion {
	all := make([]clusterVersion, 0, len(releases))
	for _, r := range releases {
		support := r.Dates.Support(now)
		all = append(all, clusterVersion{
			ClusterVersion: r.Minor(), ClusterType: eksresource.Service, DefaultPlatformVersion: platformVersion, KubernetesPatchVersion: r.Patch(),
			Status: strings.ToLower(strings.ReplaceAll(string(support), "_", "-")), VersionStatus: string(support), DefaultVersion: new(r.Default),
			ReleaseDate: r.Dates.Released, EndOfStandardSupportDate: r.Dates.EndOfStandardSupport, EndOfExtendedSupportDate: r.Dates.EndOfExtendedSupport,
			ControlPlaneComponentConfig: componentconfig.OfVersions(),
		})
	}
	return all
}
