// SPDX-License-Identifier: Apache-2.0

// Package devicerules bounds which device files the processes of a control group may open, whatever the modes of these
// files are and however they came to be: by the devices controller of version 1, or on version 2 by a program that the
// kernel asks each time (cgroup-v2.rst, "Device controller"). Who has ids of their own can change neither, also not for
// groups that they make below.
package devicerules
