"""What people read of a plan: drawings, workbooks, tables and the folder that holds them."""
