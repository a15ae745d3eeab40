// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "muster.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Cluster{}, &ClusterList{},
		&NodeGroup{}, &NodeGroupList{},
		&Machine{}, &MachineList{},
		&Addon{}, &AddonList{},
		&Update{}, &UpdateList{},
		&PodIdentityAssociation{}, &PodIdentityAssociationList{},
		&VPC{}, &VPCList{},
		&Subnet{}, &SubnetList{},
		&SecurityGroup{}, &SecurityGroupList{},
		&FileSystem{}, &FileSystemList{},
		&AccessPoint{}, &AccessPointList{},
		&VolumeSnapshot{}, &VolumeSnapshotList{},
		&AWSRecord{}, &AWSRecordList{},
		&LaunchTemplate{}, &LaunchTemplateList{},
		&IAMAccount{}, &IAMAccountList{},
		&IAMUser{}, &IAMUserList{},
		&IAMRole{}, &IAMRoleList{},
		&IAMInstanceProfile{}, &IAMInstanceProfileList{},
		&IAMPolicy{}, &IAMPolicyList{},
		&IAMOpenIDConnectProvider{}, &IAMOpenIDConnectProviderList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
