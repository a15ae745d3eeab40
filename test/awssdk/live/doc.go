// SPDX-License-Identifier: Apache-2.0

// Package live calls the actions of a running account by AWS's SDK, as a program of a user does: its clients, its
// waiters, its errors.
//
// A story starts an account and runs these tests with the environment that `muster env` prints (TestActionsByTheSDK in
// test/stories). By themselves they do nothing.
//
// A new action is one entry of a table in the file of its service:
//
//	{"DescribeCluster", func(w *world) {
//		out := need(w.eks.DescribeCluster(w.ctx(), &eks.DescribeClusterInput{Name: &w.cluster}))
//		w.has(out, "Cluster.Arn", "Cluster.Status")
//	}},
//
// Every action that the account answers is also called without rights, without an entry. denied_test.go has the
// parameters that such a request needs to be denied.
package live
