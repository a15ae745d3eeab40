// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"runtime"
	"slices"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

type addonVersionsInput struct {
	KubernetesVersion, AddonName, NextToken string
	Types, Publishers, Owners               []string
	MaxResults                              *int32
}

type addonVersionsOutput struct {
	Addons    []addonInfo
	NextToken string
}

type addonInfo struct {
	AddonName, Type, Publisher, Owner, DefaultNamespace string
	AddonVersions                                       []addonVersionInfo
}

type addonVersionInfo struct {
	AddonVersion                                  string
	Architecture, ComputeTypes                    []string
	Compatibilities                               []compatibility
	RequiresConfiguration, RequiresIAMPermissions *bool
}

type compatibility struct {
	ClusterVersion   string
	PlatformVersions []string
	DefaultVersion   *bool
}

func (a *API) describeAddonVersions() awsfront.Spec[addonVersionsInput, addonVersionsOutput] {
	return awsfront.Spec[addonVersionsInput, addonVersionsOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *addonVersionsInput) (*addonVersionsOutput, error) {
			chosen := func(from []string, value string) bool { return len(from) == 0 || slices.Contains(from, value) }
			var infos []addonInfo
			for _, known := range catalogue.New() {
				if (in.AddonName == "" || in.AddonName == known.Name) && chosen(in.Types, known.Type) && chosen(in.Publishers, known.Publisher) && chosen(in.Owners, known.Owner) {
					if shown := showAddonInfo(known, in.KubernetesVersion); len(shown.AddonVersions) > 0 {
						infos = append(infos, shown)
					}
				}
			}
			out := &addonVersionsOutput{}
			var err error
			out.Addons, out.NextToken, err = awsresource.Page(a.store.Account, call, []any{in.KubernetesVersion, in.AddonName, in.Types, in.Publishers, in.Owners}, infos,
				func(i addonInfo) string { return i.AddonName }, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}

// showAddonInfo is an add-on of the catalogue as EKS tells of it, in the versions for clusters of a minor, or for those of
// any if the minor is empty.
func showAddonInfo(known addon.Addon, minor string) addonInfo {
	info := addonInfo{AddonName: known.Name, Type: known.Type, Publisher: known.Publisher, Owner: known.Owner, DefaultNamespace: known.Namespace}
	for _, one := range catalogue.Versions(known.Name) {
		version := addonVersionInfo{
			AddonVersion: one.Version, Architecture: []string{runtime.GOARCH}, ComputeTypes: []string{"ec2"},
			RequiresConfiguration: new(false), RequiresIAMPermissions: new(false),
		}
		for _, of := range one.ClusterVersions {
			if minor == "" || minor == of {
				version.Compatibilities = append(version.Compatibilities, compatibility{of, []string{"*"}, new(true)})
			}
		}
		if len(version.Compatibilities) > 0 {
			info.AddonVersions = append(info.AddonVersions, version)
		}
	}
	return info
}

type addonConfigurationInput struct{ AddonName, AddonVersion string }

type addonConfigurationOutput struct {
	AddonName, AddonVersion, ConfigurationSchema string
	PodIdentityConfiguration                     []podIdentityConfiguration
}

type podIdentityConfiguration struct {
	ServiceAccount             string
	RecommendedManagedPolicies []string
}

func (a *API) describeAddonConfiguration() awsfront.Spec[addonConfigurationInput, addonConfigurationOutput] {
	return awsfront.Spec[addonConfigurationInput, addonConfigurationOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *addonConfigurationInput) (*addonConfigurationOutput, error) {
			all := catalogue.Versions(in.AddonName)
			i := slices.IndexFunc(all, func(a addon.Addon) bool { return a.Version == in.AddonVersion })
			if i < 0 {
				return nil, awsfault.Errorf(eksfault.NotFound, "Configuration not found for addon: %.80s, version: %.60s", in.AddonName, in.AddonVersion)
			}
			known := all[i]
			return &addonConfigurationOutput{
				AddonName: known.Name, AddonVersion: known.Version, ConfigurationSchema: known.Schema, PodIdentityConfiguration: []podIdentityConfiguration{},
			}, nil
		},
	}
}
