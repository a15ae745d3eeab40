// SPDX-License-Identifier: Apache-2.0

// Package addon is what EKS add-ons have in common: what the definition of one says, how a configuration is checked by
// its schema, what it makes of the objects that an add-on has in a cluster, and conflicts about their fields.
//
// Each add-on is a package beside this one, such as coredns, with its definition, schema, manifest, golden file and
// test; the package catalogue lists them. An add-on is one of three:
//
//   - a Deployment with what belongs to it, applied by the controller of add-ons. An add-on that few clusters have brings its image and its kinds along, in
//     files that `make addons` makes, or a target of its own;
//   - a program of each machine, such as kube-proxy, which is there in any case: the add-on reports its health;
//   - an API that the account serves, muster-explain: its objects lead the API server there.
//
// Each has one version, that of the program in this release; the number behind eksbuild is that of Muster's objects for
// it. An Addon with the version of another release is not applied: it fails, and says which version there is.
package addon
