// SPDX-License-Identifier: Apache-2.0

// Package principalid records in each access entry the id of the IAM user or role that it is for, so that a user or
// role that gets the same name later does not get in by it.
package principalid
