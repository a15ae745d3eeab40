// SPDX-License-Identifier: Apache-2.0

// Package addoncontroller is the controller of one cluster's Addons: it applies the objects of an add-on into the
// cluster, watches their health, and removes them again. It says ACTIVE only of an add-on that it has seen to be
// healthy.
//
//	CREATING ──► ACTIVE ◄──► DEGRADED        UPDATING ──► ACTIVE         DELETING ──► gone
//	   ├─► CREATE_FAILED: nothing was changed    ├─► UPDATE_FAILED: nothing was changed
//	   └─► DEGRADED after a minute               └─► DEGRADED after a minute
//
// Objects are applied on the server's side, under the field manager eks. A cluster begins with a CoreDNS of the field
// manager muster, which is no add-on. An Addon takes it over: the same fields are applied under the other manager,
// which restarts no pod unless the configuration changes one, and then muster gives its own up. From then on the
// service leaves those objects alone, also when the Addon is deleted: the ConfigMap addons in namespace muster-system
// has its name.
//
// The images of add-ons that few clusters need are made by `make addons` or `make karpenter` alone: the machines of a cluster get such an
// image when the add-on is created. The kinds that it brings along are applied before its objects, and stay when it
// goes. The image of metrics-server is made once the first nodes are Ready: machines import it when it comes, and until
// then the add-on says that it is not built.
//
// Objects are applied when the spec changes, when a release of Muster has others, and when one is gone. In between,
// changes by others stay, as on EKS.
//
// What happens if:
//
//	somebody else has set a field otherwise    NONE: nothing is changed, ConfigurationConflict names fields and managers; OVERWRITE: it is set;
//	                                           PRESERVE on an update: it stays theirs
//	the configuration is not valid             nothing is changed; CREATE_FAILED or UPDATE_FAILED
//	the API server refuses an object           AdmissionRequestDenied with its words, and another try after a minute
//	pods cannot run                            DEGRADED, InsufficientNumberOfReplicas, with what the scheduler or the kubelet says
//	there is no program for it                 DEGRADED, InsufficientNumberOfReplicas, with the reason
//	the API server does not answer for 30 s    DEGRADED, ClusterUnreachable
//	the service is killed                      the next one looks and goes on; applying twice changes nothing
//	the cluster is deleted                     its Addons go with its namespace
package addoncontroller
