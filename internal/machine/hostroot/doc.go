// SPDX-License-Identifier: Apache-2.0

// Package hostroot keeps the owner's list of clusters whose node groups may have isolation none: root on a machine of
// theirs is root on the host. It is a file of the state directory that `muster up --allow-host-root` writes. Nothing
// that an account's API or a cluster's users reach can add to it.
package hostroot
