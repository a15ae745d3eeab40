// SPDX-License-Identifier: Apache-2.0

// Package stories holds whole tales on real components: a cluster comes up, machines join, pods talk, processes are
// killed, and in the end nothing is left. They run the built programs in bin/, need root, and take a few minutes.
//
// Every story runs in a state directory of its own and is over only when the host is as it was found: [takeSnapshot]
// lists processes, namespaces, mounts, cgroups, links and sockets before and after. To start one takes some ten
// seconds: stories of one subject are steps of one story, if none disturbs the next. A step that fails does not keep
// those from running that do not need it.
//
// The AWS CLI begins once for an installation (awscli_test.go). Waits ask as an SDK asks (eksasked_test.go).
package stories
