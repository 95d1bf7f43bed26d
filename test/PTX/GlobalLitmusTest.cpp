#include "Machine.h"
