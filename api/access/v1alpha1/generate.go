// SPDX-License-Identifier: Apache-2.0

package v1alpha1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object:headerFile=boilerplate.go.txt paths=. crd output:crd:dir=crds
