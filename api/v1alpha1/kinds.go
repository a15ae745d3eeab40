// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of this package: its Go types, its scope, and which programs keep its objects in memory.
//
// +kubebuilder:object:generate=false
type Kind struct {
	// Object is an empty object of the kind.
	Object interface {
		metav1.Object
		runtime.Object
	}
	// List is an empty list of such objects.
	List interface {
		metav1.ListInterface
		runtime.Object
	}
	// Namespaced objects are in the namespace of their cluster. All other objects have no namespace and belong to the account.
	Namespaced bool
	// Described objects are read from memory by the actions of the AWS APIs.
	Described bool
	// Identity objects are entities of IAM: the identity service keeps all of them in memory.
	Identity bool
}

// Kinds returns every kind of this package. There is no other list: schemes, mappers, caches and the tests of the definitions are filled from it.
func Kinds() []Kind {
	return []Kind{
		{Object: &Cluster{}, List: &ClusterList{}, Namespaced: true, Described: true},
		{Object: &NodeGroup{}, List: &NodeGroupList{}, Namespaced: true, Described: true},
		{Object: &FargateProfile{}, List: &FargateProfileList{}, Namespaced: true, Described: true},
		{Object: &Addon{}, List: &AddonList{}, Namespaced: true, Described: true},
		{Object: &Update{}, List: &UpdateList{}, Namespaced: true, Described: true},
		{Object: &ZonalShift{}, List: &ZonalShiftList{}, Namespaced: true, Described: true},
		{Object: &PodIdentityAssociation{}, List: &PodIdentityAssociationList{}, Namespaced: true, Described: true},
		{Object: &Machine{}, List: &MachineList{}, Described: true},
		{Object: &AutoScalingGroup{}, List: &AutoScalingGroupList{}, Described: true},
		{Object: &VPC{}, List: &VPCList{}, Described: true},
		{Object: &Subnet{}, List: &SubnetList{}, Described: true},
		{Object: &SecurityGroup{}, List: &SecurityGroupList{}, Described: true},
		{Object: &FileSystem{}, List: &FileSystemList{}, Described: true},
		{Object: &AccessPoint{}, List: &AccessPointList{}, Described: true},
		{Object: &VolumeSnapshot{}, List: &VolumeSnapshotList{}},
		{Object: &AWSRecord{}, List: &AWSRecordList{}, Described: true},
		{Object: &LaunchTemplate{}, List: &LaunchTemplateList{}, Described: true},
		{Object: &Stack{}, List: &StackList{}, Described: true},
		{Object: &IAMAccount{}, List: &IAMAccountList{}, Identity: true},
		{Object: &IAMUser{}, List: &IAMUserList{}, Identity: true},
		{Object: &IAMRole{}, List: &IAMRoleList{}, Identity: true},
		{Object: &IAMInstanceProfile{}, List: &IAMInstanceProfileList{}, Described: true, Identity: true},
		{Object: &IAMPolicy{}, List: &IAMPolicyList{}, Identity: true},
		{Object: &IAMOpenIDConnectProvider{}, List: &IAMOpenIDConnectProviderList{}, Identity: true},
	}
}

// Name returns the name of the kind, as in "NodeGroup".
func (k Kind) Name() string { return reflect.TypeOf(k.Object).Elem().Name() }

// Resource returns the plural of the kind in the API server's paths, as in "nodegroups".
func (k Kind) Resource() string {
	plural, _ := meta.UnsafeGuessKindToResource(GroupVersion.WithKind(k.Name()))
	return plural.Resource
}

// AddToMapper adds the kinds of this package to a mapper, so that a client needs no discovery.
func AddToMapper(mapper *meta.DefaultRESTMapper) {
	for _, k := range Kinds() {
		if !k.Namespaced {
			mapper.Add(k.version(), meta.RESTScopeRoot)
			continue
		}
		mapper.Add(k.version(), meta.RESTScopeNamespace)
		mapper.Add(GroupVersion.WithKind(k.Name()+"List"), meta.RESTScopeNamespace) // a cache of one namespace asks for lists by this name
	}
}

func (k Kind) version() schema.GroupVersionKind { return GroupVersion.WithKind(k.Name()) }
