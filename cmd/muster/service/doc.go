// SPDX-License-Identifier: Apache-2.0

// Package service has the commands that run Muster: up, down, status, and the processes that they start.
package service
