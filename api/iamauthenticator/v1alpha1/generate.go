// SPDX-License-Identifier: Apache-2.0

package v1alpha1

//go:generate $CONTROLLER_GEN object:headerFile=boilerplate.go.txt paths=. crd output:crd:dir=crds
